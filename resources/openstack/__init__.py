"""Resource types for the services of an OpenStack cloud, declared over their REST interfaces."""
