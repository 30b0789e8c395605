"""Functions that a model may call.

A tool is a Python function, plain or async, registered by `@register_tool("name")` or named by its dotted path in
`tools.names`. Its signature is its schema: annotations give types and bounds, defaults make arguments optional, the
docstring is what the model reads. An attribute `prepare()` is called once, at the start; `at_once()` gives the number
of calls that may run at the same time, while others wait for their turn. It returns plain data;
`{"error": "..."}`, or what it raises, tells the model that a call failed. Only a UserError, such as a sandbox that does
not start, ends the run.

The modules, in reading order:

extraction     what runs in processes of their own: the text of a page, a search
pages          what comes from outside, made safe to quote: decoded, bounded, cleaned
internet       pages of public addresses, and nothing else
documents      a folder of documents, searched by their words
python, web    the tools that come with Rematch: mates do not know each other
toolbox        tools by name, their calls checked, answered and counted
loop           the model speaks, its calls are answered, until it gives an answer
"""
