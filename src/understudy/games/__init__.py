"""Games as pure array functions: the contract, the built-in games and the catalog of them."""
