"""Pure numbers: which event is where."""
