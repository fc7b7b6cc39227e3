"""The template language: HOT text, environment and parameters become resource definitions."""
