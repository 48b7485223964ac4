"""Views of a run cycle by cycle: a text pipeline view, Chrome/Perfetto traces, all of one window.

`recording` listens to an engine, which runs no further than the window; `timeline` joins its recording with the
operations, as any engine times them, follows what they depend on, and draws them as text; `perfetto` writes the other
forms.
"""
