"""`realmgate doctor`: one line for each thing that is looked at, with the remedy."""
