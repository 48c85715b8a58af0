package experiment

import "strings"

// zeroes refuses a 0 that is written where without the key something else than 0 is meant:
// it would be taken for the latter.
func (c *checker) zeroes() {
	refuse := func(path string, zero bool, hint string) {
		if zero && c.e.document.Has(path) {
			c.add(path, hint, "%s cannot be 0", path[strings.LastIndexByte(path, '.')+1:])
		}
	}
	for at, i := range c.e.Impairments() {
		refuse(at+".burst.loss", i.Burst.Loss == 0, "write above 0%, or remove burst: without loss a burst loses all")
		refuse(at+".rate", i.Rate == 0, "write above 0bit, or remove it for no limit; an outage is down: true under timeline")
		refuse(at+".queue", i.Queue == 0, "write above 0B, or remove it for what a bandwidth-delay product of the round trip holds")
	}
	refuse("load.timeout", c.e.Load.Timeout == 0, "write 1ms to 1h, or remove it for the default")
}
