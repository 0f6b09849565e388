// Command protobuf generates Go code from .proto files with the plugins that tools/go.mod pins:
//
//	go -C tools run ./protobuf -dir ../internal/autoscale/externalgrpc externalgrpc.proto
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	dir := flag.String("dir", ".", "directory of the .proto files")
	flag.Parse()
	if err := generate(context.Background(), *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "protobuf:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, dir string, files []string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: new("paths=source_relative")}
	seen := map[string]bool{}
	for _, file := range compiled {
		collect(file, seen, &request.ProtoFile)
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := run(ctx, plugin, request, dir); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

// collect appends the descriptors of a file's imports and of the file itself, each once.
func collect(file linker.File, seen map[string]bool, all *[]*descriptorpb.FileDescriptorProto) {
	if seen[file.Path()] {
		return
	}
	seen[file.Path()] = true
	for i := range file.Imports().Len() {
		collect(file.FindImportByPath(file.Imports().Get(i).Path()), seen, all)
	}
	*all = append(*all, protoutil.ProtoFromFileDescriptor(file))
}

// run runs a plugin and writes the files that it returns.
func run(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest, dir string) error {
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "tool", plugin)
	command.Stdin, command.Stderr = bytes.NewReader(input), os.Stderr
	output, err := command.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, file := range response.File {
		const mode = 0o644
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file.GetName())), []byte(file.GetContent()), mode); err != nil {
			return err
		}
	}
	return nil
}
