package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// writeArchives writes the archives of programs.
func (r *release) writeArchives(ctx context.Context) error {
	for _, a := range archivesOf(r.version, r.platforms) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := r.fill(a); err != nil {
			return fmt.Errorf("%s: %w", a.file(), err)
		}
		write := r.writeZip
		if !a.zip {
			write = func(file, dir, top string) error { return r.writeTar(file, dir, top, true) }
		}
		if err := write(filepath.Join(r.out, a.file()), r.stage(a), a.folder); err != nil {
			return fmt.Errorf("%s: %w", a.file(), err)
		}
	}
	return nil
}

// fill fills the folder of an archive with links to its files.
func (r *release) fill(a archive) error {
	files := map[string]string{"LICENSE": filepath.Join(r.source, "LICENSE")}
	for _, name := range a.programs {
		files[programFile(name, a.platform)] = r.program(name, a.platform)
	}
	if a.prebuilt {
		found, err := tree(r.prebuilt(a.platform))
		if err != nil {
			return err
		}
		for _, name := range found {
			files["prebuilt/"+name] = filepath.Join(r.prebuilt(a.platform), name)
		}
	}
	for name, from := range files {
		to := filepath.Join(r.stage(a), name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := link(from, to); err != nil {
			return err
		}
	}
	return nil
}

// link makes a file the same as another one: a link where that is possible, else a copy. syft does not follow symbolic links that leave
// its folder.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// tree returns the names of the files below a folder in their order, without hidden ones such as locks.
func tree(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		name, err := filepath.Rel(dir, file)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	return names, err
}

// writeTar writes the files below a folder as a tar archive, below another folder in it. All have the date of the commit.
func (r *release) writeTar(file, dir, top string, compressed bool) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var to io.WriteCloser = out
	if compressed {
		zipped := gzip.NewWriter(out)
		defer func() { err = errors.Join(err, zipped.Close()) }()
		to = zipped
	}
	w := tar.NewWriter(to)
	defer func() { err = errors.Join(err, w.Close()) }()
	return eachFile(dir, func(name string, info fs.FileInfo, content io.Reader) error {
		h := tar.Header{
			Typeflag: tar.TypeReg, Name: path.Join(top, name), Mode: int64(mode(info)), Size: info.Size(), ModTime: r.date,
			Format: tar.FormatPAX,
		}
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := io.Copy(w, content)
		return err
	})
}

// writeZip writes the files below a folder as a zip archive, below another folder in it.
func (r *release) writeZip(file, dir, top string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := zip.NewWriter(out)
	defer func() { err = errors.Join(err, w.Close()) }()
	return eachFile(dir, func(name string, info fs.FileInfo, content io.Reader) error {
		h := zip.FileHeader{Name: path.Join(top, name), Method: zip.Deflate, Modified: r.date}
		h.SetMode(mode(info))
		to, err := w.CreateHeader(&h)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, content)
		return err
	})
}

// mode returns the mode of a file in an archive: that of a program, or of a text.
func mode(info fs.FileInfo) fs.FileMode {
	if info.Mode()&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// eachFile calls a function for each file below a folder, in their order.
func eachFile(dir string, do func(name string, info fs.FileInfo, content io.Reader) error) error {
	names, err := tree(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil {
			err = do(name, info, f)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
