// Command box is the only program in the images of a local cluster: it waits (pause), serves (web), or sends requests and
// writes files (tools). Layer L4; standard library only, so that it builds without modules and stays small.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `box pause                      wait for SIGTERM
box web [ADDRESS...]           answer HTTP and UDP with the names of client and server; ADDRESS is [HOST]:PORT, default :8080
box admit DIR                  refuse every object as an admission webhook at :8443, with tls.crt and tls.key in DIR
box api DIR                    serve the API kaz.test/v1 to the aggregator of an API server at :8443, likewise
box get URL                    send an HTTP request
box udp HOST:PORT [TEXT]       send a UDP packet
box write FILE TEXT            write a text to a file, and wait until it is on the disk
box read FILE                  print a file
box fill FILE MIB              write random data to a file, wait until it is on the disk, and print its SHA-256
box sum FILE                   print the SHA-256 of a file
box sleep                      wait, so that commands can run in the container
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "box:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command given:\n%s", usage)
	}
	switch command, args := args[0], args[1:]; command {
	case "pause", "sleep":
		return pause(ctx)
	case "web":
		return web(ctx, args)
	case "admit":
		return serveTLS(ctx, command, args, http.HandlerFunc(refuse))
	case "api":
		return serveTLS(ctx, command, args, aggregated())
	case "get":
		return get(ctx, args)
	case "udp":
		return udp(ctx, args)
	case "write", "read", "fill", "sum":
		return file(command, args)
	default:
		return fmt.Errorf("unknown command %q:\n%s", command, usage)
	}
}

// pause waits, and as the first process of a sandbox reaps orphans.
func pause(ctx context.Context) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
	}
}

// answer returns the response of web: its host name, the client, the local address and the request.
func answer(client, at, asked string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return fmt.Sprintf("pod %s client %s at %s asked %s\n", host, client, at, asked)
}

func web(ctx context.Context, addresses []string) error {
	if len(addresses) == 0 {
		addresses = []string{":8080"}
	}
	failed := make(chan error, 2*len(addresses))
	for _, address := range addresses {
		var c net.ListenConfig
		l, err := c.Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		p, err := c.ListenPacket(ctx, "udp", address)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: http.HandlerFunc(serve), ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- server.Serve(l) }()
		go func() { failed <- echo(p) }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// serve answers at once, /slow?for=DURATION after that time, and /stream line by line until the client closes.
func serve(w http.ResponseWriter, r *http.Request) {
	at := r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
	text := answer(r.RemoteAddr, at, r.Host+r.URL.Path)
	switch r.URL.Path {
	case "/stream":
		stream(w, r, text)
		return
	case "/slow":
		wait, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil {
			http.Error(w, "for="+r.URL.Query().Get("for")+": want a duration such as 2s", http.StatusBadRequest)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(wait):
		}
	}
	_, _ = io.WriteString(w, text) // the client is gone
}

func stream(w http.ResponseWriter, r *http.Request, text string) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// serveTLS serves the API server until ctx ends.
func serveTLS(ctx context.Context, command string, args []string, handler http.Handler) error {
	if len(args) != 1 {
		return errors.New(command + " takes a directory")
	}
	server := &http.Server{Addr: ":8443", Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	err := server.ListenAndServeTLS(filepath.Join(args[0], "tls.crt"), filepath.Join(args[0], "tls.key"))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// refuse answers an AdmissionReview of the API server with the name of this pod.
func refuse(w http.ResponseWriter, r *http.Request) {
	type object = map[string]any
	var review struct {
		APIVersion string
		Kind       string
		Request    struct{ UID string }
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	at := r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object{ // the client is gone
		"apiVersion": review.APIVersion, "kind": review.Kind,
		"response": object{"uid": review.Request.UID, "allowed": false, "status": object{"message": answer(r.RemoteAddr, at, r.Host)}},
	})
}

// aggregated serves the group kaz.test with one resource. Its objects name the client, the server and the user of the request.
func aggregated() http.Handler {
	type object = map[string]any
	send := func(w http.ResponseWriter, o object) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o) // the client is gone
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/kaz.test/v1", func(w http.ResponseWriter, _ *http.Request) {
		send(w, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "kaz.test/v1", "resources": []object{
			{"name": "answers", "singularName": "answer", "namespaced": false, "kind": "Answer", "verbs": []string{"get"}},
		}})
	})
	mux.HandleFunc("GET /apis/kaz.test/v1/answers/{name}", func(w http.ResponseWriter, r *http.Request) {
		at := r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
		send(w, object{"kind": "Answer", "apiVersion": "kaz.test/v1", "metadata": object{"name": r.PathValue("name")},
			"answer": answer(r.RemoteAddr, at, r.Host), "user": r.Header.Get("X-Remote-User")})
	})
	return mux
}

func echo(p net.PacketConn) error {
	buffer := make([]byte, 64<<10)
	for {
		n, client, err := p.ReadFrom(buffer)
		if err != nil {
			return err
		}
		if _, err := p.WriteTo([]byte(answer(client.String(), p.LocalAddr().String(), strings.TrimSpace(string(buffer[:n])))),
			client); err != nil {
			return err
		}
	}
}

// requestTimeout bounds a request of get and udp.
const requestTimeout = 5 * time.Second

func get(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("get takes one URL")
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
	if err != nil {
		return err
	}
	if strings.HasPrefix(args[0], "http://169.254.169.254/") {
		request.Header.Set("Metadata", "true")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		return errors.New(response.Status)
	}
	return nil
}

// file runs a command on a file.
func file(command string, args []string) error {
	wanted := map[string]int{"write": 2, "read": 1, "fill": 2, "sum": 1}[command]
	if len(args) != wanted {
		return fmt.Errorf("%s takes %d arguments:\n%s", command, wanted, usage)
	}
	switch command {
	case "write":
		return save(args[0], strings.NewReader(args[1]+"\n"))
	case "fill":
		size, err := strconv.Atoi(args[1])
		if err != nil || size < 1 {
			return fmt.Errorf("fill %s %s: want a number of MiB", args[0], args[1])
		}
		sum := sha256.New()
		if err := save(args[0], io.TeeReader(io.LimitReader(rand.Reader, int64(size)<<20), sum)); err != nil {
			return err
		}
		fmt.Printf("%x\n", sum.Sum(nil))
		return nil
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	if command == "read" {
		_, err = io.Copy(os.Stdout, f)
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	fmt.Printf("%x\n", sum.Sum(nil))
	return nil
}

// save writes a file and returns when the file and its name are on the disk.
func save(name string, content io.Reader) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func udp(ctx context.Context, args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return errors.New("udp takes an address and a text")
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, strings.Join(args[1:], " ")+"\n"); err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	n, err := c.Read(buffer)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(buffer[:n])
	return err
}
