"""The smallest backend: it returns INPUT0 as OUTPUT0.

core ─► [Identity.execute] ─► core.  The counterpart of triton_identity/identity.cc, with only the public
interface of backends. It runs on the event loop, since its work takes almost no time.
"""

import core


class Identity(core.ModelInstance):
    placement = "inline"

    def execute(self, batch):  # INPUT0: any datatype and shape -> OUTPUT0: the same
        return {"OUTPUT0": batch["INPUT0"]}


backend = core.Backend(instance=Identity)
