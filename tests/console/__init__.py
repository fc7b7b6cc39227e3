"""Tests of the console, as a package: at the top of the house is another folder of that name."""
