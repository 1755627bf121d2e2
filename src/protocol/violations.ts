/** A violation makes the skill invalid; a warning never does. */
export type Severity = 'violation' | 'warning';

/** One entry of the catalogue. */
export interface Rule {
  severity: Severity;
  /** What is wrong, one sentence. */
  summary: string;
  /** What the author does about it, one sentence. */
  fix: string;
}

const violation = (summary: string, fix: string) => ({ severity: 'violation', summary, fix }) as const;
const warning = (summary: string, fix: string) => ({ severity: 'warning', summary, fix }) as const;

/**
 * The closed catalogue of codes that a `Finding` can carry; docs/errors.md lists the same codes, a test compares the two.
 * Codes are stable: they are never renamed and never change their meaning.
 */
export const VIOLATIONS = {
  // SKILL.md as bytes
  SkillMdMissing: violation(
    'The skill directory has no SKILL.md.',
    'Add SKILL.md, spelled exactly so, at the root of the skill.',
  ),
  SkillMdTooLarge: violation(
    'SKILL.md is larger than 1 MiB.',
    'Move details into files under references/ and link them.',
  ),
  SkillMdNotUtf8: violation('SKILL.md is not valid UTF-8.', 'Save the file as UTF-8.'),
  SkillMdNulCharacter: violation(
    'SKILL.md contains a NUL character.',
    'Delete the NUL character; save the file as plain UTF-8 text.',
  ),
  SkillMdLoneCarriageReturn: violation(
    'SKILL.md contains a carriage return without a line feed.',
    'Save the file with LF or CRLF line ends.',
  ),

  // The fence
  FrontmatterMissing: violation(
    'SKILL.md does not start with a line that is exactly ---.',
    'Make --- the first line, with nothing before it and nothing after it.',
  ),
  FrontmatterUnclosed: violation('No line --- closes the frontmatter.', 'Add a line --- after the last field.'),
  FrontmatterTooLarge: violation(
    'The frontmatter is larger than 64 KiB.',
    'Keep the fields short; put long text into the body.',
  ),
  FrontmatterEmpty: violation('The frontmatter has no fields.', 'Add at least name and description.'),
  FrontmatterNotMapping: violation(
    'The frontmatter is not a mapping of fields.',
    'Write one field per line, as `key: value`.',
  ),

  // YAML
  YamlSyntaxInvalid: violation(
    'The frontmatter is not valid YAML 1.2.',
    'Correct the line; quote values with special characters.',
  ),
  YamlColonUnquoted: violation('A value contains a colon that YAML reads as another key.', 'Quote the value.'),
  YamlTabIndent: violation('A line is indented with a tab.', 'Indent with spaces.'),
  YamlKeyDuplicate: violation('A mapping has the same key twice.', 'Keep one of the two.'),
  YamlKeyInvalid: violation('A key is not a plain string.', 'Use a string as the key.'),
  YamlAliasForbidden: violation(
    'The frontmatter uses a YAML anchor or alias.',
    'Write the value out; quote a text that starts with & or *.',
  ),
  YamlTagUnknown: violation(
    'The frontmatter uses a YAML tag that is not of the core schema.',
    'Remove the tag; quote a text that starts with !.',
  ),
  YamlMultipleDocuments: violation(
    'The frontmatter holds a YAML document marker or directive.',
    'Keep one document: no line that starts with ..., %, or --- followed by text.',
  ),
  YamlTooDeep: violation('The frontmatter nests deeper than 64 levels.', 'Flatten the value.'),

  // Fields
  NameMissing: violation('The field name is missing or empty.', 'Add `name:` with the name of the directory.'),
  NameInvalid: violation(
    'The name has characters that a skill name cannot have.',
    'Use a-z, 0-9 and single hyphens between them.',
  ),
  NameTooLong: violation('The name is longer than 64 characters.', 'Shorten the name and the directory.'),
  NameMismatchesDirectory: violation('The name is not the name of the directory.', 'Make both equal, byte for byte.'),
  DescriptionMissing: violation(
    'The field description is missing or empty.',
    'Add `description:` that says what the skill does and when to use it.',
  ),
  DescriptionBlank: violation('The description consists of blanks.', 'Say what the skill does and when to use it.'),
  DescriptionTooLong: violation(
    'The description is longer than 1,024 characters.',
    'Shorten it; details belong into the body.',
  ),
  CompatibilityTooLong: violation(
    'The field compatibility is longer than 500 characters.',
    'Shorten it; details belong into the body.',
  ),
  FieldNotString: violation(
    'A field that must be a string holds something else.',
    'Quote the value, or write one string.',
  ),
  MetadataNotMapping: violation('The field metadata is not a mapping.', 'Write `key: value` lines below it, indented.'),
  AllowedToolsInvalid: violation(
    'The field allowed-tools is neither a string nor a list of strings.',
    'Write one string, or a list of strings.',
  ),
  RuntimeUnknown: violation(
    'The runtime is none of the seven values.',
    'Use one of the seven values, or leave the field out for prompt-only.',
  ),

  // Runtime and Dockerfile
  DockerfileMissing: violation(
    'The runtime needs the Dockerfile of its engine, and the skill has none.',
    'Add the file at the root of the skill, or choose another runtime.',
  ),
  DockerfileForbidden: violation(
    'The skill has a Dockerfile that its runtime does not use.',
    'Delete the file, or set the runtime to the engine of the Dockerfile.',
  ),
  DockerfilesBoth: violation('The skill has the Dockerfiles of both engines.', 'Keep the one of the runtime.'),
  DockerfileTooLarge: violation(
    'The Dockerfile is larger than 256 KiB.',
    'Move the content into scripts that the Dockerfile copies.',
  ),
  DockerfileInvalid: violation(
    'No builder can read the Dockerfile at this line.',
    'Correct the line; the message says what it expects.',
  ),
  DockerfileFromMissing: violation(
    'The Dockerfile is empty or has no FROM.',
    'Start it with FROM and the base image of the engine.',
  ),
  DockerfileBaseRefused: violation(
    'The last stage for E2B is built on scratch or a distroless image.',
    'Build the last stage on a distribution image such as debian:12-slim and copy the result into it.',
  ),

  // .skillenv
  SkillenvForbidden: violation(
    'A prompt-only skill has a .skillenv.',
    'Delete the file, or choose a runtime with a sandbox.',
  ),
  SkillenvTooLarge: violation('.skillenv is larger than 64 KiB.', 'Keep only the variables that the scripts read.'),
  SkillenvEncodingInvalid: violation(
    '.skillenv is not UTF-8 without BOM and NUL.',
    'Save the file as UTF-8 without BOM.',
  ),
  SkillenvCarriageReturn: violation('.skillenv contains a carriage return.', 'Save the file with LF line ends.'),
  SkillenvLineInvalid: violation(
    'A line of .skillenv is neither KEY=VALUE nor a comment.',
    'Write KEY=VALUE; a comment starts with # in the first column.',
  ),
  SkillenvKeyInvalid: violation(
    'A key in .skillenv has characters that it cannot have.',
    'Use A-Z, 0-9 and _, not starting with a digit.',
  ),
  SkillenvKeyDuplicate: violation('A key stands twice in .skillenv.', 'Keep one of the two lines.'),
  SkillenvKeyReserved: violation(
    'A key in .skillenv starts with TFROBOT_.',
    'Rename it; the platform sets these variables itself.',
  ),
  SkillenvKeyRefusedByEngine: violation(
    'CubeSandbox refuses to start with this variable.',
    'Rename the variable, or set it inside the script.',
  ),

  // Body
  PlaceholderUnknown: violation(
    'The body uses a TFROBOT_ placeholder that does not exist.',
    'Use TFROBOT_SKILL_DIR, TFROBOT_SESSION_ID or TFROBOT_ROBOT_ID, or put the text into a fenced code block.',
  ),

  // Files
  SymlinkInvalid: violation(
    'A symbolic link does not lead to a file that may be copied from inside the skill.',
    'Replace the link with the file itself.',
  ),
  SubmoduleNotSupported: violation('A Git submodule stands inside the skill.', 'Commit the files themselves.'),
  LfsPointer: violation(
    'A file is a Git LFS pointer; its content is not in the repository.',
    'Store the file in Git itself.',
  ),
  TooManyFiles: violation('The skill has more than 10,000 files.', 'Remove files that the skill does not need.'),
  PackageTooLarge: violation(
    'The files of the skill are larger than 60 MiB in all.',
    'Remove or shrink large files; let a script download them.',
  ),
  PathTooLong: violation('A path is longer than 512 bytes.', 'Shorten the names.'),
  PathTooDeep: violation('A path has more than 32 levels.', 'Move the file up.'),
  PathNotUtf8: violation('A path is not valid UTF-8.', 'Rename the file.'),
  PathControlCharacter: violation('A path contains a control character.', 'Rename the file.'),
  PathInvalid: violation('A path is absolute or has an empty, . or .. segment.', 'Rename the file.'),
  PathCollision: violation(
    'Two paths are the same once case and Unicode normalisation are ignored.',
    'Rename or delete one of them.',
  ),
  ContentNotRead: violation(
    'The content of a file could not be read from the source.',
    'Commit the file again; report it if it stays.',
  ),

  // Warnings
  ByteOrderMark: warning('SKILL.md starts with a byte order mark.', 'Save the file as UTF-8 without BOM.'),
  FieldNull: warning('An optional field has no value and counts as absent.', 'Give it a value, or delete the line.'),
  FieldUnknown: warning(
    'The protocol does not know the field; it is ignored.',
    'Correct the spelling, move it below metadata, or leave it.',
  ),
  ValueCutByComment: warning(
    'A value ends where YAML starts a comment, at a blank followed by #.',
    'Quote the value, or delete the comment.',
  ),
  ValueAmbiguous: warning('YAML 1.1 readers take the value for a boolean, a number or a date.', 'Quote the value.'),
  InvisibleCharacter: warning(
    'SKILL.md contains characters that nobody sees but a model reads.',
    'Delete them unless they are meant.',
  ),
  EnvFileIncluded: warning(
    'The package contains a file that usually holds secrets.',
    'Delete it from Git if it holds any; declare variables in .skillenv.',
  ),
  FileNameWrongCase: warning(
    'A file name differs from one of the protocol only in its spelling and has no effect.',
    'Rename the file.',
  ),
  EnvdMissing: warning(
    'The image for CubeSandbox neither comes from a CubeSandbox base nor copies envd.',
    'Add the COPY and the ENTRYPOINT of the message to the last stage, or build on the CubeSandbox base image.',
  ),
  EnvdNotStarted: warning(
    'The image for CubeSandbox has envd, but its ENTRYPOINT does not start it.',
    'Use cube-entrypoint.sh as ENTRYPOINT and your own program as CMD.',
  ),
  DockerfileBaseUnpinned: warning(
    'A base image has no tag, or one that moves, so that the next build may differ.',
    'Name a release or a digest.',
  ),
  DockerfileBaseUnsupported: warning(
    'E2B is known to refuse the distribution of the base image.',
    'Build the last stage on Debian, Ubuntu, Fedora, CentOS, Rocky Linux, AlmaLinux, Arch, Alpine or NixOS.',
  ),
  DockerfileInstructionIgnored: warning(
    'E2B ignores ENTRYPOINT, CMD and USER of an image.',
    'Delete the instruction; the script of the skill is started by the sandbox itself.',
  ),
  DockerfileSyntaxIgnored: warning(
    'The image builder does not know a part of the Dockerfile and built without it.',
    'Write it without that part, and check that the image holds what it should.',
  ),
} as const satisfies Record<string, Rule>;

/** A code of the catalogue. */
export type FindingCode = keyof typeof VIOLATIONS;
