"""Views of a run cycle by cycle: a text pipeline view, Chrome/Perfetto and Kanata traces, all of one window.

`recording` listens to an engine, which runs no further than the window; `timeline` joins its recording with the
operations, as any engine times them, and follows what they depend on; `pipeline_text` and `perfetto` write the forms.
"""
