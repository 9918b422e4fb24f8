"""What slate has learnt of the programs' kernels by the end of a run, as rows: FLOPs and bytes for the tables."""


def write_profiles(session):
    """One row a kernel, of the first configuration that knows any."""
    for configuration in session.configurations:
        kernels = configuration.profile()
        for kernel in kernels:
            alone = [found["ms"] for found in kernel["alone"].values()]
            if alone:
                session.writer.write(
                    "profile",
                    configuration=configuration.name,
                    program=session.kernels.get(kernel["name"]),
                    kernel=kernel["name"],
                    ms=min(alone),
                    flops=kernel["flops"],
                    bytes=kernel["bytes"],
                    instructions=kernel["instructions"],
                    **{"class": kernel["class"]}
                )
        if kernels:
            return
