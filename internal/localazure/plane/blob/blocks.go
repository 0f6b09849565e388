package blob

import (
	"cmp"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"kaz/internal/localazure/plane/octets"
)

// block is a part of a content.
type block struct {
	ID   string `json:"id" xml:"Name"`
	Size int    `json:"size" xml:"Size"`
}

// staged are the blocks of a blob that no list has committed, by their ids. They are in memory alone: a restart loses them.
type staged struct {
	content map[string][]byte
	made    string // when the container was made
}

// The most blocks that a blob has, and the most that wait for a list, as Azure documents them.
const (
	mostBlocks = 50_000
	mostStaged = 100_000
)

// blockID returns the id of the block of a request.
func (c blockCall) blockID() (string, error) {
	const most = 64
	id := c.query.Get("blockid")
	if id == "" {
		return "", refuse(http.StatusBadRequest, "MissingRequiredQueryParameter",
			"A query parameter that's mandatory for this request is not specified: blockid.")
	}
	if decoded, err := base64.StdEncoding.DecodeString(id); err != nil || len(decoded) == 0 || len(decoded) > most {
		return "", invalidParameter("blockid", id, fmt.Sprintf("1 to %d bytes in base64", most))
	}
	return id, nil
}

// stage keeps a block until a list commits it.
func (c blockCall) stage() error {
	id, err := c.blockID()
	if err != nil {
		return err
	}
	content, _, err := copyCall(c).given()
	if err != nil {
		return err
	}
	if len(content) == 0 {
		return invalidHeader("Content-Length", "0", "at least 1")
	}
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if had, there := s.blobs[c.key()]; there {
		if had.Type != blockBlob {
			return wrongType()
		}
		if _, err := c.find(changes); err != nil {
			return err
		}
	}
	if err := s.stage(c.key(), c.made, id, content); err != nil {
		return err
	}
	c.w.Header().Set("x-ms-request-server-encrypted", "true")
	c.answerSums(content)
	c.w.WriteHeader(http.StatusCreated)
	return nil
}

// withBothSums is the first version in which a request with a sum of kind MD5 gets that of kind CRC64, too.
const withBothSums = "2026-10-06"

// answerSums answers with the sums of a block. The request gets that of kind MD5 only if it has one.
func (c blockCall) answerSums(content []byte) {
	asked := cmp.Or(c.r.Header.Get("Content-MD5"), c.r.Header.Get("x-ms-source-content-md5")) != ""
	if asked {
		c.w.Header().Set("Content-MD5", octets.MD5(content))
	}
	if !asked || c.r.Header.Get("x-ms-version") >= withBothSums {
		c.w.Header().Set("x-ms-content-crc64", octets.CRC64(content))
	}
}

// stage keeps a block of the blob with a key. All blocks that wait have ids of one length. The caller holds the lock.
func (s *Service) stage(key, made, id string, content []byte) error {
	waiting := s.staged[key]
	if waiting.made != made {
		s.unstage(key)
		waiting = staged{map[string][]byte{}, made}
	}
	if waiting.content == nil {
		waiting.content = map[string][]byte{}
	}
	for other := range waiting.content {
		if len(other) != len(id) {
			return refuse(http.StatusBadRequest, "InvalidBlobOrBlock",
				"The specified blob or block content is invalid: the id %q has another length than that of other blocks, %q.", id, other)
		}
		break
	}
	if _, again := waiting.content[id]; !again && len(waiting.content) >= mostStaged {
		return refuse(http.StatusConflict, "BlockCountExceedsLimit",
			"The uncommitted block count cannot exceed the maximum limit of %d blocks.", mostStaged)
	}
	grown := int64(len(content) - len(waiting.content[id]))
	if err := s.checkSpace(grown); err != nil {
		return err
	}
	s.size += grown
	waiting.content[id] = content
	if s.staged == nil {
		s.staged = map[string]staged{}
	}
	s.staged[key] = waiting
	return nil
}

// unstage forgets the blocks of the blob with a key. The caller holds the lock.
func (s *Service) unstage(key string) {
	for _, content := range s.staged[key].content {
		s.size -= int64(len(content))
	}
	delete(s.staged, key)
}

// wantedBlock is an element of a list: where to look for the block with an id.
type wantedBlock struct {
	XMLName xml.Name
	ID      string `xml:",chardata"`
}

// wantedBlocks reads the list of a request.
func (c blockCall) wantedBlocks() ([]wantedBlock, error) {
	const most = 8 << 20 // of 50,000 ids with their elements
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if err != nil {
		return nil, refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "%v", err)
	}
	if err := octets.Check(c.r.Header, text); err != nil {
		return nil, err
	}
	var list struct {
		XMLName xml.Name      `xml:"BlockList"`
		Blocks  []wantedBlock `xml:",any"`
	}
	if err := xml.Unmarshal(text, &list); err != nil {
		return nil, invalidDocument(err)
	}
	if len(list.Blocks) > mostBlocks {
		return nil, refuse(http.StatusBadRequest, "BlockListTooLong",
			"The block list may not contain more than %d blocks: it has %d.", mostBlocks, len(list.Blocks))
	}
	return list.Blocks, nil
}

func invalidDocument(err error) error {
	return refuse(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid: %v.", err)
}

// commit makes a blob of blocks that wait, and of blocks that it has.
func (c blockCall) commit() error {
	wanted, err := c.wantedBlocks()
	if err != nil {
		return err
	}
	b := stored{facts: facts{Type: blockBlob, Properties: propertiesOf(c.r.Header, false).orAny()}}
	s := c.service
	s.mu.Lock()
	had := s.blobs[c.key()]
	waiting := s.staged[c.key()]
	s.mu.Unlock()
	if had.Type == appendBlob {
		return wrongType()
	}
	committed := had.byBlock()
	for _, w := range wanted {
		content, found := waiting.content[w.ID]
		if waiting.made != c.made || w.XMLName.Local == "Committed" {
			found = false
		}
		if !found && w.XMLName.Local != "Uncommitted" {
			content, found = committed[w.ID]
		}
		if !found {
			return refuse(http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid: there is no block %q as %s.",
				w.ID, w.XMLName.Local)
		}
		b.content = append(b.content, content...)
		b.Blocks = append(b.Blocks, block{w.ID, len(content)})
	}
	return c.create(b, http.StatusCreated)
}

// byBlock returns the content of the blocks of a blob, by their ids.
func (b stored) byBlock() map[string][]byte {
	all, at := map[string][]byte{}, 0
	for _, k := range b.Blocks {
		all[k.ID] = b.content[at : at+k.Size]
		at += k.Size
	}
	return all
}

// blockLists is the answer to a request for the blocks of a blob.
type blockLists struct {
	XMLName     xml.Name `xml:"BlockList"`
	Committed   []block  `xml:"CommittedBlocks>Block"`
	Uncommitted []block  `xml:"UncommittedBlocks>Block"`
}

// blocks answers with the blocks of a blob: those that a list has committed, those that wait, or both.
func (c blockCall) blocks() error {
	kind := strings.ToLower(c.query.Get("blocklisttype"))
	if kind == "" {
		kind = "committed"
	}
	if !slices.Contains([]string{"committed", "uncommitted", "all"}, kind) {
		return invalidParameter("blocklisttype", kind, "committed, uncommitted or all")
	}
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.staged[c.key()]
	if _, there := s.blobs[c.key()]; there || len(waiting.content) == 0 || waiting.made != c.made {
		b, err := c.find(reads)
		if err == nil && b.Type != blockBlob {
			err = wrongType()
		}
		if err != nil {
			return err
		}
		b.headers(c.w)
	}
	b := s.blobs[c.key()]
	c.w.Header().Set("x-ms-blob-content-length", formatInt(len(b.content)))
	list := blockLists{Committed: b.Blocks}
	if waiting.made == c.made {
		for id, content := range waiting.content {
			list.Uncommitted = append(list.Uncommitted, block{id, len(content)})
		}
	}
	slices.SortFunc(list.Uncommitted, func(a, b block) int { return strings.Compare(a.ID, b.ID) })
	if kind == "committed" {
		list.Uncommitted = nil
	}
	if kind == "uncommitted" {
		list.Committed = nil
	}
	reply(c.w, http.StatusOK, list)
	return nil
}
