package authority

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/internal/whole"
)

// What is wrong with a token.
var (
	ErrToken   = errors.New("not a token of a fabric")
	ErrUnknown = errors.New("no such token: it was used, it has expired, or it was never made")
)

// Token lets one cluster join a fabric, once. As text it is a secret.
type Token struct {
	// Address is where the fabric's authority answers, as HOST:PORT.
	Address string `json:"a"`
	Cluster string `json:"c"`
	// Root is the SHA-256 of the fabric's certificate, by which its answer is believed.
	Root   []byte `json:"r"`
	Secret string `json:"s"`
}

const tokenPrefix = "skerry-join-"

// tokenMax bounds what is read as one, in bytes.
const tokenMax = 4096

// Text is the token as it is handed over. String has no secret, so that none is logged.
func (t Token) Text() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and bytes always can be
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(text)
}

// String says which token it is, without its secret.
func (t Token) String() string { return "token for " + t.Cluster + " at " + t.Address }

// ParseToken reads a token's text: what Text writes, byte for byte, and nothing else.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	body, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(body) > tokenMax {
		return Token{}, ErrToken
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return Token{}, ErrToken
	}
	var t Token
	if err := json.Unmarshal(raw, &t); err != nil || len(t.Root) != sha256.Size || t.Address == "" || t.Cluster == "" || t.Secret == "" {
		return Token{}, ErrToken
	}
	if t.Text() != text {
		return Token{}, ErrToken
	}
	return t, nil
}

// waiting is a token that was made and not used yet, as the authority keeps it: by the
// hash of its secret.
type waiting struct {
	Cluster string    `json:"cluster"`
	Until   time.Time `json:"until"`
}

// tokensFolder is where, in the folder of the fabric's authority.
const tokensFolder = "tokens"

func waitingPath(folder, secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return filepath.Join(folder, tokensFolder, hex.EncodeToString(sum[:])+".json")
}

// newSecret makes one and remembers it.
func newSecret(folder string, w waiting) (string, error) {
	secret := rand.Text()
	return secret, identity.Locked(folder, func() error {
		const perm, secretPerm = 0o700, 0o600
		if err := os.MkdirAll(filepath.Join(folder, tokensFolder), perm); err != nil {
			return err
		}
		return whole.JSON(waitingPath(folder, secret), secretPerm, w)
	})
}

// use takes a token away, and says which cluster it is for.
func use(folder, secret string, now time.Time) (cluster string, err error) {
	err = identity.Locked(folder, func() error {
		cluster, err = take(waitingPath(folder, secret), now)
		return err
	})
	return cluster, err
}

func take(path string, now time.Time) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", ErrUnknown
	}
	var w waiting
	if err := json.Unmarshal(text, &w); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return "", err
	}
	if now.After(w.Until) {
		return "", ErrUnknown
	}
	return w.Cluster, nil
}
