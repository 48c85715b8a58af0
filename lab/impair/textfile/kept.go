package textfile

// Kept is what was made of files, by their names, for as long as it is in use: so
// that what goes on does not change with its file, nor end with it. The zero value
// has none.
type Kept[T any] struct{ before, now map[string]T }

// Next begins another round: what is not opened in it is kept no longer.
func (k Kept[T]) Next() Kept[T] { return Kept[T]{before: k.now, now: map[string]T{}} }

// Open gives what was made of a file in this round or in the one before, or what
// open makes of it now. Next must have been called.
func (k Kept[T]) Open(name string, open func(name string) (T, error)) (T, error) {
	made, known := k.now[name]
	if !known {
		made, known = k.before[name]
	}
	if !known {
		var err error
		if made, err = open(name); err != nil {
			return made, err
		}
	}
	k.now[name] = made
	return made, nil
}
