"""The functions of the template language: modules that implement them, and the table of all."""
