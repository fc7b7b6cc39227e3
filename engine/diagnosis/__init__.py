"""Why a stack is not finished, and the conductors that are to finish it, as operators and users see them."""
