# Stoker acts for a user by a trust, so the forms need not ask for the password.
OPENSTACK_HEAT_STACK = {"enable_user_pass": False}
