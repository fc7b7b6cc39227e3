"""Settings of which Horizon's static files are made, and with which each Horizon of the tests begins."""

import os
import sys

AVAILABLE_THEMES = [("default", "Default", "themes/default")]
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
# Not in cookies: a session has the service catalog, and browsers drop cookies above 4 KiB.
SESSION_ENGINE = "django.contrib.sessions.backends.cache"
SECRET_KEY = "of the tests"
STATIC_ROOT = os.path.join(sys.prefix, "static")
COMPRESS_OFFLINE = True
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
