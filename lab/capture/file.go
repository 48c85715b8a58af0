package capture

import (
	"bufio"
	"io"
	"runtime"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// fileBuffer holds what a round writes, in bytes, so that writes are few.
const fileBuffer = 1 << 20

// file is what a capture writes: pcapng with an interface for each tap and times in
// nanoseconds.
type file struct {
	*pcapgo.NgWriter
	// ids of the taps' interfaces in the file.
	ids   map[*tap]int
	began time.Time
}

// newFile writes the file's head to w.
func newFile(w io.Writer, taps []*tap, o Options) (*file, error) {
	f := &file{ids: map[*tap]int{}, began: time.Now()}
	section := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
		Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: o.Application,
	}}
	for i, t := range taps {
		described := pcapgo.NgInterface{
			Name: t.Name, OS: runtime.GOOS, LinkType: layers.LinkTypeEthernet, SnapLength: uint32(len(t.buffer)),
		}
		var err error
		if i == 0 {
			// A large buffer of ours is the one that the writer then uses.
			f.NgWriter, err = pcapgo.NewNgWriterInterface(bufio.NewWriterSize(w, fileBuffer), described, section)
		} else {
			f.ids[t], err = f.AddInterface(described)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, f.Flush()
}

// write writes the packet that a tap holds.
func (f *file) write(t *tap) error {
	info, data := t.take()
	info.InterfaceIndex = f.ids[t]
	return f.WritePacket(info, data)
}

// finish writes what was counted, and tells it.
func (f *file) finish(taps []*tap, end time.Time) ([]Total, error) {
	var all []Total
	for _, t := range taps {
		dropped, err := t.dropped()
		if err != nil {
			return nil, err
		}
		err = f.WriteInterfaceStats(f.ids[t], pcapgo.NgInterfaceStatistics{
			LastUpdate: end, StartTime: f.began, EndTime: end, PacketsReceived: t.written + dropped, PacketsDropped: dropped,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, Total{Name: t.Name, Packets: t.written, Dropped: dropped})
	}
	return all, f.Flush()
}
