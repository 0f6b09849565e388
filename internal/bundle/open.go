package bundle

import (
	"archive/tar"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// Bundle is an open bundle, of which everything has been verified.
type Bundle struct {
	Manifest Manifest
	file     *os.File
	parts    map[string]section
}

// section is where a part is in the file of the bundle.
type section struct {
	Part
	offset int64
}

// Options of [Open] and of the methods that copy.
type Options struct {
	// Say reports progress, one line at a time. It may be nil.
	Say func(line string)
}

// Open opens a bundle and verifies it: first its signature, then each part. It returns no bundle of which a byte differs from what was
// signed.
func Open(ctx context.Context, path string, key crypto.PublicKey, o Options) (*Bundle, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b := &Bundle{file: f, parts: map[string]section{}}
	if err := b.read(ctx, key, o); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return b, nil
}

// Close closes the file of the bundle.
func (b *Bundle) Close() error { return b.file.Close() }

func (b *Bundle) read(ctx context.Context, key crypto.PublicKey, o Options) error {
	archive := tar.NewReader(b.file)
	text, err := b.small(archive, manifestPath, mostManifest)
	if err != nil {
		return err
	}
	signature, err := b.small(archive, signaturePath, mostSignature)
	if err != nil {
		return err
	}
	if err := verify(key, text, signature); err != nil {
		return err
	}
	if b.Manifest, err = parse(text); err != nil {
		return err
	}
	progress := newProgress("verified", b.Manifest.Bytes(), o.Say)
	for _, p := range b.Manifest.Parts {
		if err := b.readPart(ctx, archive, p, progress); err != nil {
			return err
		}
	}
	return b.checkEnd(archive)
}

// next goes to the next file of the archive, and returns where it begins.
func (b *Bundle) next(archive *tar.Reader, name string) (size, offset int64, err error) {
	h, err := archive.Next()
	switch {
	case errors.Is(err, io.EOF):
		return 0, 0, fmt.Errorf("%s is missing: the file is truncated, or no bundle", name)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, 0, fmt.Errorf("the file ends before %s: it is truncated", name)
	case err != nil:
		return 0, 0, fmt.Errorf("%s: not an archive as kaz bundle create writes it: %w", name, err)
	case h.Name != name || h.Typeflag != tar.TypeReg:
		return 0, 0, fmt.Errorf("%s is missing: the archive has %.100q there", name, h.Name)
	}
	offset, err = b.file.Seek(0, io.SeekCurrent)
	return h.Size, offset, err
}

// small reads a file of the archive into memory.
func (b *Bundle) small(archive *tar.Reader, name string, most int64) ([]byte, error) {
	size, _, err := b.next(archive, name)
	if err != nil {
		return nil, err
	}
	if size > most {
		return nil, fmt.Errorf("%s has %d bytes: want at most %d", name, size, most)
	}
	text, err := io.ReadAll(archive)
	if err != nil {
		return nil, fmt.Errorf("the file ends within %s: it is truncated", name)
	}
	return text, nil
}

// readPart verifies the next part of the archive.
func (b *Bundle) readPart(ctx context.Context, archive *tar.Reader, p Part, progress *progress) error {
	size, offset, err := b.next(archive, p.Path)
	if err != nil {
		return err
	}
	if size != p.Size {
		return fmt.Errorf("%s has %d bytes: %s says %d", p.Path, size, manifestPath, p.Size)
	}
	s := section{p, offset}
	b.parts[p.Path] = s
	_, err = io.Copy(progress, until(ctx, b.open(s)))
	return err
}

// checkEnd returns an error if the archive has more than the manifest says, or less.
func (b *Bundle) checkEnd(archive *tar.Reader) error {
	if h, err := archive.Next(); err == nil {
		return fmt.Errorf("%.100q is not in %s", h.Name, manifestPath)
	}
	const block = 512
	var end int64
	for _, s := range b.parts {
		end = max(end, s.offset+(s.Size+block-1)/block*block)
	}
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	if want := end + 2*block; info.Size() != want {
		return fmt.Errorf("the file has %d bytes: want %d; it is truncated, or something was appended", info.Size(), want)
	}
	return nil
}

// open opens a part. Its reader compares the part with its digest again: the file may have changed since it was verified.
func (b *Bundle) open(s section) io.Reader {
	return newChecked(io.NewSectionReader(b.file, s.offset, s.Size), s.Part)
}

// blob returns the part with a digest.
func (b *Bundle) blob(digest string) (section, error) {
	s, ok := b.parts[blobPath(digest)]
	if !ok {
		return section{}, fmt.Errorf("no part has the digest %s", digest)
	}
	return s, nil
}

// openBlob opens the part with a digest, and returns its size.
func (b *Bundle) openBlob(digest string) (io.ReadCloser, int64, error) {
	s, err := b.blob(digest)
	if err != nil {
		return nil, 0, err
	}
	return io.NopCloser(b.open(s)), s.Size, nil
}

// checked compares what it reads with the digest and the size of a part. Its end is an error if they differ.
type checked struct {
	from io.Reader
	part Part
	read int64
	sum  hash.Hash
}

func newChecked(from io.Reader, p Part) *checked {
	return &checked{from: from, part: p, sum: sha256.New()}
}

func (c *checked) Read(to []byte) (int, error) {
	n, err := c.from.Read(to)
	c.sum.Write(to[:n])
	if c.read += int64(n); c.read > c.part.Size {
		return n, fmt.Errorf("%s has more than %d bytes, those of its manifest", c.part.Path, c.part.Size)
	}
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if c.read < c.part.Size {
		return n, fmt.Errorf("%s ends after %d of %d bytes: it is truncated", c.part.Path, c.read, c.part.Size)
	}
	if got := "sha256:" + hex.EncodeToString(c.sum.Sum(nil)); got != c.part.Digest {
		return n, fmt.Errorf("%s has the digest %s: want %s; it was changed", c.part.Path, got, c.part.Digest)
	}
	return n, io.EOF
}

// readerFunc is a reader of one function.
type readerFunc func(to []byte) (int, error)

func (f readerFunc) Read(to []byte) (int, error) { return f(to) }

// until reads until a context ends.
func until(ctx context.Context, from io.Reader) io.Reader {
	return readerFunc(func(to []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return from.Read(to)
	})
}

// progress counts bytes, and says when another tenth of them is done.
type progress struct {
	what        string
	done, total int64
	say         func(string)
}

func newProgress(what string, total int64, say func(string)) *progress {
	return &progress{what: what, total: total, say: say}
}

func (p *progress) Write(b []byte) (int, error) {
	before := p.tenths()
	p.done += int64(len(b))
	if now := p.tenths(); now > before && p.say != nil {
		p.say(fmt.Sprintf("%s %d0 %% of %s", p.what, now, bytesText(p.total)))
	}
	return len(b), nil
}

func (p *progress) tenths() int64 {
	if p.total == 0 {
		return 0
	}
	return p.done * 10 / p.total
}

// bytesText is a number of bytes as people read it.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
}
