"""Views of a run cycle by cycle: a text pipeline view, Chrome/Perfetto traces, all of one window.

`recording` observes an engine, which runs no further than the window; `timeline` combines its recording with the
operations, as any engine times them, follows their dependences, and draws them as text; `perfetto` writes the other
formats.
"""
