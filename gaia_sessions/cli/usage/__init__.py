"""What was typed wrong on a command line, and the line to type instead.

Owns the explanation of every mistake and the words that people try for the right ones. Loaded only when a line could
not be understood. Must never run a command, and no hint may leave out a word that was typed.
"""
