"""`realmgate drain`: the messages of another broker's queue move into the realm."""
