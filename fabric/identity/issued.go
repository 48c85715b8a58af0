package identity

import (
	"bufio"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// issuedFile has a line for each certificate that an authority has signed, so that those
// of a name can be revoked.
const issuedFile = "issued.jsonl"

// Issued is one certificate that an authority has signed.
type Issued struct {
	// Name is its DNS name without the authority's domain: a cluster's or a gateway's.
	Name   string    `json:"name"`
	Serial string    `json:"serial"`
	Until  time.Time `json:"until"`
	// Key identifies that of an authority; those of before have none.
	Key string `json:"key,omitempty"`
}

// Record notes a certificate that the authority of a folder has signed, before anybody gets it.
func Record(folder, name string, c *x509.Certificate) error {
	line, err := json.Marshal(Issued{name, c.SerialNumber.Text(serialBase), c.NotAfter, hex.EncodeToString(c.SubjectKeyId)})
	if err != nil {
		return err
	}
	return Locked(folder, func() error { return appendLine(filepath.Join(folder, issuedFile), append(line, '\n')) })
}

// appendLine adds a line to a file, which then is on the disk, or none of it.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, secretPerm)
	if err != nil {
		return err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err = f.Write(line); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Truncate(before.Size()))
	}
	return nil
}

// ListIssued lists what the authority of a folder has signed, but for what has expired.
func ListIssued(folder string, now time.Time) ([]Issued, error) {
	all, err := readIssued(filepath.Join(folder, issuedFile))
	return slices.DeleteFunc(all, func(one Issued) bool { return !now.Before(one.Until) }), err
}

func readIssued(path string) (all []Issued, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		var one Issued
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		all = append(all, one)
	}
	return all, lines.Err()
}

// RevokeName revokes all certificates of a name that an authority has signed, and says
// how many were not revoked before.
func RevokeName(folder, name string, now time.Time) (int, error) {
	if _, _, err := LoadAuthority(folder); err != nil {
		return 0, err
	}
	all, err := ListIssued(folder, now)
	if err != nil {
		return 0, err
	}
	var serials []*big.Int
	for _, one := range all {
		if one.Name != name {
			continue
		}
		serial, err := parseSerial(one.Serial)
		if err != nil {
			return 0, err
		}
		serials = append(serials, serial)
	}
	if len(serials) == 0 {
		return 0, fmt.Errorf("%s: no certificate of that name was signed here, or all have expired", name)
	}
	return Revoke(folder, serials, now)
}
