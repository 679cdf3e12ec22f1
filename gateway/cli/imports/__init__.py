"""`realmgate import`: the nodes and grants of another broker's configuration, as the file that `node apply` takes."""
