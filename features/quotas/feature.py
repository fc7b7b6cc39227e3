"""The parts that quotas have in the programs; the engine checks them."""

from ..registry import Feature

QUOTAS = Feature(
    "quotas",
    routes="features.quotas.handlers:ROUTES",
    rules="features.quotas.rules:RULES",
    commands={
        "quota delete": "quotas:QuotaDelete",
        "quota list": "quotas:QuotaList",
        "quota set": "quotas:QuotaSet",
        "quota show": "quotas:QuotaShow",
    },
)
