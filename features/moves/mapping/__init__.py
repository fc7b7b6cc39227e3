"""What Heat and Stoker both store of a stack, under both names: the moves in both directions read it here."""
