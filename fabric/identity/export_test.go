package identity

import "crypto"

// SignerOf lets tests sign what an authority would not.
func SignerOf(a Authority) crypto.Signer { return a.key }
