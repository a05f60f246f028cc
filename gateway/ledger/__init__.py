"""Money: admission, settlement, accounts, keys, books. The README beside this file states what always holds."""
