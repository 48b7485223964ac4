"""Views of a run cycle by cycle: a text pipeline view, Chrome/Perfetto and Kanata traces, all of one window.

`recording` listens to the event engine, `timeline` joins what it heard with the operations, `dependences` and
`counters` add what the tree says; `pipeline_text`, `perfetto` and `kanata` write the forms.
"""
