"""What tests of changing instances write into configurations, and what their models have noted."""


def events(chain, kind):
    """Names of the instances that noted this, in order; forgets all notes."""
    found = sorted(name for event, name in chain.recorder.batches if event == kind)
    chain.recorder.batches.clear()
    return found


def group(count, name="g", more=""):
    return (
        f'{{ name: "{name}" count: {count} {"" if "kind" in more else "kind: KIND_CPU"} {more} }}'
    )


def groups(*found):
    return f"instance_group [ {', '.join(found)} ]"
