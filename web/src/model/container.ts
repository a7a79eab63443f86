/** Reads what Python packed: gzip of a JSON text and of arrays whose bytes are sorted by their place in a number. */

export type Numbers = Float64Array | Float32Array | Int32Array;

/** An array with its shape. */
export interface Matrix {
  readonly data: Numbers;
  readonly shape: readonly number[];
}

/** Undo gzip. */
export async function decompressed(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Bytes of a base64 text. */
export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const out = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}

/** The values and arrays of a packed text. */
export async function unpacked(text: string): Promise<unknown> {
  return parsed(await decompressed(fromBase64(text.trim())));
}

/** The values and arrays of unpacked bytes. */
export function parsed(bytes: Uint8Array): unknown {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true);
  const text = new TextDecoder().decode(bytes.subarray(4, 4 + length));
  const body = bytes.subarray(4 + length);
  return JSON.parse(text, (_key, value) => {
    const place = value?.$;
    if (!Array.isArray(place)) return value;
    const [kind, start, ...shape] = place as [string, number, ...number[]];
    const size = shape.reduce((a, b) => a * b, 1);
    return { data: numbers(kind, body, start, size), shape } satisfies Matrix;
  });
}

function numbers(kind: string, body: Uint8Array, start: number, size: number): Numbers {
  const width = kind === "f8" ? 8 : 4;
  const out = new Uint8Array(size * width);
  for (let b = 0; b < width; b++) {
    const plane = start + b * size;
    for (let i = 0; i < size; i++) out[i * width + b] = body[plane + i];
  }
  if (kind === "f8") return new Float64Array(out.buffer);
  return kind === "f4" ? new Float32Array(out.buffer) : new Int32Array(out.buffer);
}
