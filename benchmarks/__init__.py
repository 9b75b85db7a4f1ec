"""One script per published figure; each prints its ratio, its target and the machine."""
