"""One process of a cluster: its port, server, job and signals; and a local cluster."""
