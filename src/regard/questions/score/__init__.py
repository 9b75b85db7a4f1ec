"""Why a head looks from one word at another: one attention score, split."""
