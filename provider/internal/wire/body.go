package wire

import "io"

// Body is a request body in pieces, so that the bytes of a long conversation
// are sent from where they lie. The pieces must not change while the body is in
// use; a transport may read it after its response has come.
type Body struct {
	pieces [][]byte
	size   int64
}

// Add appends a piece.
func (b *Body) Add(piece []byte) {
	if len(piece) > 0 {
		b.pieces = append(b.pieces, piece)
		b.size += int64(len(piece))
	}
}

// Size is the number of bytes.
func (b *Body) Size() int64 { return b.size }

// Reader reads the body from its beginning.
func (b *Body) Reader() io.ReadCloser { return &bodyReader{pieces: b.pieces} }

type bodyReader struct {
	pieces [][]byte
	offset int // in the first piece
}

func (r *bodyReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(r.pieces) > 0 {
		c := copy(p[n:], r.pieces[0][r.offset:])
		n += c
		if r.offset += c; r.offset == len(r.pieces[0]) {
			r.pieces, r.offset = r.pieces[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *bodyReader) Close() error { return nil }
