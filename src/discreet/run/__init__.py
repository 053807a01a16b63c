"""One run over a programme: counting its cubes and identifying its inputs."""
