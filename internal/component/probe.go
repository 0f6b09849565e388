package component

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kaz/internal/component/release"
)

const (
	probeFlag = "probe-url"
	// probeTime is how long a probe asks again, and probePause the time between two requests, each of which may take probeTimeout.
	probeTime    = time.Minute
	probePause   = time.Second
	probeTimeout = 5 * time.Second
)

func addProbeFlag(global *pflag.FlagSet) {
	global.String(probeFlag, "", "Only ask this URL, for a minute at most, and end with status 0 if it answers 200, as helm test does. "+
		"Certificates are those of public authorities.")
}

// Instead does what flags ask for in place of the program's work, and reports whether one does: --version and --probe-url.
func Instead(command *cobra.Command) (done bool, err error) {
	if done, err := release.Print(command); done || err != nil {
		return done, err
	}
	url, err := command.Flags().GetString(probeFlag)
	if err != nil || url == "" {
		return false, err
	}
	ctx, stop := UntilSignal(command.Context())
	defer stop()
	if err := probe(ctx, url); err != nil {
		return true, fmt.Errorf("--%s %s: %w", probeFlag, url, err)
	}
	_, err = fmt.Fprintf(command.OutOrStdout(), "%s answers\n", url)
	return true, err
}

// probe asks a URL until it answers 200, and returns what its last answer was.
func probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	client := http.Client{Timeout: probeTimeout}
	tick := time.NewTicker(probePause)
	defer tick.Stop()
	for {
		last := askOnce(ctx, &client, url)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}

// askOnce sends one request. An error has the status of another answer than 200, and the begin of its text.
func askOnce(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	const most = 500
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %s, want 200", answer.Status, text)
}
