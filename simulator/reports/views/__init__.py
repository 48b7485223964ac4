"""Views of a run cycle by cycle: a text pipeline view, Chrome/Perfetto and Kanata traces, all of one window.

`recording` listens to an engine, which runs no further than the window; `timeline` joins its recording with the
operations, as any engine times them; `dependences` and `counters` add what the tree says, `ahead` what it says of the
time after the window; `pipeline_text`, `perfetto` and `kanata` write the forms.
"""
