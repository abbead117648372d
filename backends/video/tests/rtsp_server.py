"""A camera for tests: /usr/bin/python3 rtsp_server.py [PORT]. --check looks for GStreamer."""

import signal
import sys

try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer
except (ImportError, ValueError):
    sys.exit(3)

PIPELINE = (
    "( videotestsrc is-live=true pattern=ball ! video/x-raw,width=160,height=120,framerate=25/1"
    " ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=5 sliced-threads=false"
    " ! rtph264pay name=pay0 pt=96 config-interval=-1 )"
)


def main() -> None:
    Gst.init(None)
    if "--check" in sys.argv:
        sys.exit(0 if Gst.ElementFactory.find("x264enc") else 3)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(sys.argv[1] if len(sys.argv) > 1 else "0")
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(PIPELINE)
    factory.set_shared(True)
    server.get_mount_points().add_factory("/film", factory)
    server.attach(None)
    print(server.get_bound_port(), flush=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main()
