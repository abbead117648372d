"""The smallest backend: INPUT0 leaves as OUTPUT0.

core ─► [Identity.execute] ─► core.  The counterpart of triton_identity/identity.cc, through the public
interface of backends and nothing else. It runs on the event loop, as work of no duration should.
"""

import core


class Identity(core.ModelInstance):
    placement = "inline"

    def execute(self, batch):  # INPUT0: any datatype and shape -> OUTPUT0: the same
        return {"OUTPUT0": batch["INPUT0"]}


backend = core.Backend(instance=Identity)
