"""Search engines over a corpus behind one protocol: keywords, vectors, or a server that holds either."""
