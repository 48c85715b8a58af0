package identity

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/whole"
)

// ErrTaken says that a folder has an identity already.
var ErrTaken = errors.New("there is an identity already")

// Rights of what is written.
const (
	folderPerm = 0o700
	secretPerm = 0o600
)

// Write makes a folder of an identity: a key, the chain of its certificate, and the
// authorities to believe. It replaces none.
func Write(folder string, key crypto.Signer, chain, trusted []*x509.Certificate) error {
	if _, err := os.Lstat(filepath.Join(folder, keyFile)); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = ErrTaken
		}
		return fmt.Errorf("%s: %w", folder, err)
	}
	return fill(folder, key, chain, EncodeCertificates(trusted), nil)
}

// Replace puts an identity in a folder's place, in one step: who reads the folder finds
// the one before or this one, whole, and at any time whatever else the folder has.
func Replace(folder string, key crypto.Signer, chain []*x509.Certificate, trusted, revoked []byte) error {
	if _, err := ParseCertificates(trusted); err != nil {
		return err
	}
	next := filepath.Clean(folder) + ".next"
	if err := os.RemoveAll(next); err != nil { // of one that was not completed
		return err
	}
	if err := fill(next, key, chain, trusted, revoked); err != nil {
		return err
	}
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(next, folder)
	}
	if err := linkRest(folder, next); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, next, unix.AT_FDCWD, folder, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("replace %s: %w", folder, err)
	}
	return os.RemoveAll(next) // the one before, all of which the other has
}

// Renew does so with the folder of an authority, and keeps the lists that the one before has
// signed: nobody else knows better what those have.
func Renew(folder string, key crypto.Signer, chain []*x509.Certificate, trusted, revoked []byte) error {
	return Locked(folder, func() error {
		all, err := withOwn(folder, revoked)
		if err != nil {
			return err
		}
		return Replace(folder, key, chain, trusted, all)
	})
}

// linkRest has one folder have the files of another that are not of an identity.
func linkRest(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case slices.Contains([]string{".", certificateFile, keyFile, caFile, revokedFile}, rest):
			return nil
		case e.IsDir():
			return os.Mkdir(filepath.Join(to, rest), folderPerm)
		}
		return os.Link(path, filepath.Join(to, rest))
	})
}

// fill writes the files of an identity, the key last.
func fill(folder string, key crypto.Signer, chain []*x509.Certificate, trusted, revoked []byte) error {
	if err := os.MkdirAll(folder, folderPerm); err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writeRevoked(folder, revoked); err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		text []byte
	}{
		{caFile, trusted},
		{certificateFile, EncodeCertificates(chain)},
		{keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})},
	} {
		if err := put(filepath.Join(folder, file.name), file.text); err != nil {
			return err
		}
	}
	return nil
}

// LoadAuthority reads an authority, and whom it believes, from its folder.
func LoadAuthority(folder string) (a Authority, trusted []*x509.Certificate, err error) {
	if a.Chain, err = readCertificates(filepath.Join(folder, certificateFile)); err != nil {
		return a, nil, err
	}
	text, err := readKey(filepath.Join(folder, keyFile))
	if err != nil {
		return a, nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return a, nil, fmt.Errorf("%s in %s: %w", keyFile, folder, ErrFolder)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return a, nil, fmt.Errorf("%s in %s: %w: %w", keyFile, folder, ErrFolder, err)
	}
	var signs bool
	if a.key, signs = key.(crypto.Signer); !signs || !a.Chain[0].IsCA {
		return a, nil, fmt.Errorf("%s is of no authority: %w", folder, ErrFolder)
	}
	trusted, err = readCertificates(filepath.Join(folder, caFile))
	return a, trusted, err
}

func put(path string, text []byte) error {
	return whole.Write(path, secretPerm, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
