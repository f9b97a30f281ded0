"""What is known of each host: how its payloads are read, what it can be answered, where its settings lie.

One module or folder for each host; ``registry`` is the only list of them, ``protocol`` what each must have. Must never
touch a record: what a host sends becomes events.
"""
