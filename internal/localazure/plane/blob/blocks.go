package blob

import (
	"cmp"
	"encoding/base64"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"kaz/internal/azure"
)

const (
	// mostBlocks is how many blocks a blob has, and how many are staged for it.
	mostBlocks = 50_000
	// longestBlockID is the number of bytes of the id of a block before it was encoded.
	longestBlockID = 64
)

// block is a block of a blob.
type block struct {
	ID   string `json:"id" xml:"Name"` // in base 64
	Size int    `json:"size" xml:"Size"`
}

// staging are the blocks of a blob that no list has committed. They are in memory only.
type staging struct {
	blocks map[string][]byte // by their ids
	made   string            // when the container was made
}

func (s staging) size() (all int64) {
	for _, content := range s.blocks {
		all += int64(len(content))
	}
	return all
}

// putBlock stages a block.
func (c *call) putBlock() error {
	id := c.query.Get("blockid")
	raw, err := base64.StdEncoding.DecodeString(id)
	if err != nil || len(raw) == 0 || len(raw) > longestBlockID {
		return refuse(http.StatusBadRequest, "InvalidQueryParameterValue",
			"Value for one of the query parameters specified in the request URI is invalid: blockid is %q, want 1 to %d bytes in base 64.",
			id, longestBlockID)
	}
	content, err := c.body()
	if err != nil {
		return err
	}
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := c.find(stages); err != nil {
		return err
	}
	if err := s.stage(c.key(), id, content, c.made); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusCreated)
	return nil
}

// stage keeps a block. The ids of all blocks of a blob are equally long. The caller holds the lock.
func (s *Service) stage(key, id string, content []byte, made string) error {
	known := s.staged[key]
	others := slices.Collect(maps.Keys(known.blocks))
	if len(others) == 0 {
		others = ids(s.blobs[key].blocks)
	}
	if len(others) > 0 && len(others[0]) != len(id) {
		return refuse(http.StatusBadRequest, "InvalidBlobOrBlock",
			"The specified blob or block content is invalid: the id %s is not as long as that of the other blocks, %s.", id, others[0])
	}
	if _, again := known.blocks[id]; !again && len(known.blocks) >= mostBlocks {
		return refuse(http.StatusConflict, "BlockCountExceedsLimit",
			"The uncommitted block count cannot exceed the maximum limit of %d blocks.", mostBlocks)
	}
	size := s.size - int64(len(known.blocks[id])) + int64(len(content))
	if size > mostContent && size > s.size {
		return s.full()
	}
	if s.staged == nil {
		s.staged = map[string]staging{}
	}
	if known.blocks == nil {
		known.blocks, known.made = map[string][]byte{}, made
	}
	known.blocks[id] = content
	s.staged[key], s.size = known, size
	return nil
}

// unstage forgets the blocks that no list has committed. The caller holds the lock.
func (s *Service) unstage(key string) {
	s.size -= s.staged[key].size()
	delete(s.staged, key)
}

func ids(blocks []block) (all []string) {
	for _, b := range blocks {
		all = append(all, b.ID)
	}
	return all
}

// mostList is how many bytes a list of blocks has.
const mostList = 8 << 20

// chosen is a list of blocks that make a blob.
type chosen struct {
	Blocks []struct {
		XMLName xml.Name
		ID      string `xml:",chardata"`
	} `xml:",any"`
}

// putBlockList makes a blob of blocks that are staged, or that it has.
func (c *call) putBlockList() error {
	var list chosen
	err := xml.NewDecoder(io.LimitReader(c.r.Body, mostList)).Decode(&list)
	if err != nil {
		return refuse(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid: %v", err)
	}
	if len(list.Blocks) > mostBlocks {
		return refuse(http.StatusBadRequest, "BlockListTooLong", "The block list may not contain more than %d blocks.", mostBlocks)
	}
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	had, err := c.find(creates)
	if err != nil {
		return err
	}
	content, blocks, err := assemble(list, had, s.staged[c.key()])
	if err != nil {
		return err
	}
	return c.write(had, stored{content: content, blocks: blocks,
		kind: cmp.Or(c.r.Header.Get("x-ms-blob-content-type"), "application/octet-stream")})
}

// assemble returns the content of a list of blocks.
func assemble(list chosen, had stored, s staging) (content []byte, blocks []block, err error) {
	committed := map[string][]byte{}
	at := 0
	for _, b := range had.blocks {
		committed[b.ID] = had.content[at : at+b.Size]
		at += b.Size
	}
	for _, b := range list.Blocks {
		part, there := s.blocks[b.ID]
		switch kind := b.XMLName.Local; {
		case kind == "Committed", kind == "Latest" && !there:
			part, there = committed[b.ID]
		case kind != "Uncommitted" && kind != "Latest":
			return nil, nil, refuse(http.StatusBadRequest, "InvalidXmlNodeValue",
				"The value provided for one of the XML nodes in the request body was not in the correct format: %s.", kind)
		}
		if !there {
			return nil, nil, refuse(http.StatusBadRequest, "InvalidBlockList",
				"The specified block list is invalid: there is no block %s.", b.ID)
		}
		content = append(content, part...)
		blocks = append(blocks, block{b.ID, len(part)})
	}
	return content, blocks, nil
}

// blockList are the blocks of a blob.
type blockList struct {
	XMLName     xml.Name `xml:"BlockList"`
	Committed   *blocks  `xml:"CommittedBlocks"`
	Uncommitted *blocks  `xml:"UncommittedBlocks"`
}

type blocks struct {
	All []block `xml:"Block"`
}

// getBlockList answers with the blocks that a blob has, those that are staged for it, or both.
func (c *call) getBlockList() error {
	kind := c.query.Get("blocklisttype")
	if !slices.Contains([]string{"", "committed", "uncommitted", "all"}, kind) {
		return refuse(http.StatusBadRequest, "InvalidQueryParameterValue",
			"Value for one of the query parameters specified in the request URI is invalid: blocklisttype is %q.", kind)
	}
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.staged[c.key()]
	b, there := s.blobs[c.key()]
	if there || len(known.blocks) == 0 {
		var err error
		if b, err = c.find(reads); err != nil {
			return err
		}
		b.headers(c.w)
	}
	var list blockList
	if kind != "uncommitted" {
		list.Committed = &blocks{b.blocks}
	}
	if kind == "uncommitted" || kind == "all" {
		list.Uncommitted = &blocks{}
		for _, id := range slices.Sorted(maps.Keys(known.blocks)) {
			list.Uncommitted.All = append(list.Uncommitted.All, block{id, len(known.blocks[id])})
		}
	}
	c.w.Header().Set("x-ms-blob-content-length", strconv.Itoa(len(b.content)))
	reply(c.w, http.StatusOK, list)
	return nil
}

// unstageOthers forgets what is staged in a container that had its name before. The caller holds the lock.
func (s *Service) unstageOthers(container azure.ID, made string) {
	for key, known := range s.staged {
		if within(key, container) && known.made != "" && known.made != made {
			s.unstage(key)
		}
	}
}
