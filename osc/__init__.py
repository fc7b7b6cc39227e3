"""Commands for ``openstack`` that Heat's client lacks; they run where the client runs, without the rest."""
