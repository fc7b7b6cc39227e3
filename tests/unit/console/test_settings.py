"""The settings that the console reads before anybody has logged in."""

import falcon
import falcon.testing
import pytest
from stoker.console.pages import Console


@pytest.mark.parametrize("horizon", [None, "https://cloud.example.org/horizon"])
def test_the_settings_name_horizon_where_it_is_configured(horizon: str | None) -> None:
    app = falcon.App()
    Console("1.2", horizon=horizon).add_to(app)
    settings = falcon.testing.TestClient(app).simulate_get("/console/settings").json
    assert settings == {"auth": "none", "version": "1.2", "project": "demo", "horizon": horizon}
