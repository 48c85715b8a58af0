package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/spf13/cobra"
)

// headerTimeout bounds how long a client of the registry may take to say what it wants.
const headerTimeout = 10 * time.Second

// registryCommand keeps images that are pushed to it, and that nodes pull.
func registryCommand() *cobra.Command {
	var addr, dir string
	cmd := &cobra.Command{
		Use:    "registry --listen HOST:PORT --dir DIR",
		Short:  "Keep images until SIGTERM: layers in a folder, manifests in memory",
		Args:   none,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if addr == "" || dir == "" {
				return usage("registry needs --listen HOST:PORT and --dir DIR")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("registry: %w", err)
			}
			l, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", addr)
			if err != nil {
				return fmt.Errorf("registry: %w", err)
			}
			ready(cmd, l.Addr())
			return serveImages(cmd.Context(), l, dir)
		},
	}
	cmd.Flags().StringVar(&addr, "listen", "", "address to listen on, as HOST:PORT")
	cmd.Flags().StringVar(&dir, "dir", "", "folder that layers are kept in")
	return cmd
}

// serveImages goes on until its context ends.
func serveImages(ctx context.Context, l net.Listener, dir string) error {
	server := &http.Server{
		Handler:           registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(dir))),
		ReadHeaderTimeout: headerTimeout,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("registry: %w", err)
	}
	return nil
}
