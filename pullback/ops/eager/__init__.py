"""The plain case of every public function: straight to the arrays, where every tensor is plain and nothing listens.

functions       makes and registers them, writes them again when an operator they go past is overridden
text            the pieces that their source is put together from
elementwise, views, products, rows, straight     the source of the plain case, by kind of operator
signature       what `inspect.signature` and `help` say of them
"""
